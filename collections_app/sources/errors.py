"""The errors of a refresh. Their messages are for managers of the collection."""


class SourceFailed(Exception):
    """The source could not be loaded; its documents stay as they are."""


class RefreshInterrupted(Exception):
    """The refresh continues later: its time is over, or too many documents are queued."""
