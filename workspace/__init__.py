"""The pages on which signed-in people work with records. They read and write through the Table API."""
