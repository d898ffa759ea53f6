"""The admin form of a collection, with a help text for each setting."""

from functools import partial
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.roles import RoleMultipleChoiceField
from accounts.models import Role
from collections_app.http.api.serializers import check_language
from collections_app.models import Collection
from collections_app.models.collections import InvalidName, check_visible_characters, normalize_name

# PostgreSQL's text search configurations. `check_language` verifies that the server has the selected one.
TEXT_CONFIGURATIONS = (
    "simple arabic armenian basque catalan danish dutch english estonian finnish french german greek hindi hungarian "
    "indonesian irish italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil "
    "turkish yiddish"
)
LANGUAGE_HELP = "Language for keyword search in new and reprocessed documents. Leave empty to detect it per document."
NAME_TAKEN = "A collection with this name already exists."
_role_field = partial(RoleMultipleChoiceField, queryset=Role.objects.all(), required=False)


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    reader_roles = _role_field(
        label="Readers",
        help_text="Roles that can search this collection, in addition to writers. Leave empty for writers only.",
    )
    writer_roles = _role_field(
        label="Writers", help_text="Roles that can add and delete documents. Leave empty for collection_admin only."
    )

    class Meta:
        model = Collection
        fields = (
            "name", "text_configuration", "chunk_size", "chunk_overlap", "alpha", "reader_roles", "writer_roles",
        )  # fmt: skip
        labels = {"alpha": "Keyword weight"}
        help_texts = {
            "text_configuration": LANGUAGE_HELP,
            "chunk_size": "Maximum number of characters per passage, for new and reprocessed documents.",
            "chunk_overlap": "Number of characters repeated from the previous passage. At most half of the chunk size.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "text_configuration" in self.fields:
            configurations = dict.fromkeys((*TEXT_CONFIGURATIONS.split(), self.instance.text_configuration))
            choices = [("", "Detect automatically"), *((name, name) for name in configurations if name)]
            self.fields["text_configuration"].widget = UnfoldAdminSelectWidget(choices=choices)

    def clean_name(self) -> str:
        try:
            name = normalize_name(self.cleaned_data["name"])
            if name != self.initial.get("name"):
                check_visible_characters(name)
        except InvalidName as error:
            raise forms.ValidationError(error.message) from None
        own_id = "" if self.instance.is_new else self.instance.pk  # an unsaved collection has no key yet
        if Collection.objects.filter(name=name, deleted_at__isnull=True).exclude(pk=own_id).exists():
            raise forms.ValidationError(NAME_TAKEN)
        return name

    def clean_text_configuration(self) -> str:
        return check_language(self.cleaned_data["text_configuration"])
