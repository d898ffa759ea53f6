"""How far a scan of the change log has come."""

from django.db import models


class ChangePosition(models.Model):
    """A single row: the last change that was examined, and when all changes had been."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    database = models.BigIntegerField()
    transaction = models.CharField(max_length=20)
    change_id = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        abstract = True
