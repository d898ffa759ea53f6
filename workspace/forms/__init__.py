"""What a record form shows: the layout, a control for each column, and the values of a submitted form."""
