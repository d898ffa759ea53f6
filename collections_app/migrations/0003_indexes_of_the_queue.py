from django.db import migrations, models
from django.db.models import Q

UNFINISHED = ('queued', 'extracting', 'splitting', 'embedding')
INDEXES = (
    models.Index(
        fields=['created_by', 'next_at', 'id'], condition=Q(state__in=UNFINISHED), name='document_version_turn'
    ),
    models.Index(fields=['error_code'], condition=Q(state='failed'), name='document_version_failed'),
    models.Index(fields=['id'], condition=Q(state='ready', is_searched=False), name='document_version_unsearched'),
)


class Migration(migrations.Migration):
    dependencies = [('collections_app', '0002_chunks_go_with_their_version')]
    operations = [migrations.AddIndex(model_name='version', index=index) for index in INDEXES]
