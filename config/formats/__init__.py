"""Display formats of dates and times."""
