"""What people add to a record without changing it: comments, attachments, followers."""
