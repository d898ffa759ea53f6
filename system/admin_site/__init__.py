"""The admin site: base pages, dashboard, history, edit conflicts."""
