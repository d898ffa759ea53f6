"""The admin form of a collection: what can be set, and what each setting means."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from rest_framework import serializers
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.roles import RoleChoices
from accounts.models import Role
from collections_app.http.api.serializers import CollectionSettingsSerializer
from collections_app.models import Collection
from collections_app.models.collections import check_name, check_visible, well_named

# The text search configurations that PostgreSQL brings; which of them this one has, is asked when one is chosen.
LANGUAGES = (
    "simple arabic armenian basque catalan danish dutch english estonian finnish french german greek hindi hungarian "
    "indonesian irish italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil "
    "turkish yiddish"
)
LANGUAGE = "How words are compared in documents loaded from now on. Empty: guessed for each document."
TAKEN = "There is a collection of this name already."


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    reader_roles = RoleChoices(
        label="Readers",
        queryset=Role.objects.all(),
        required=False,
        help_text="Who holds one of these may search here. Writers may too. None chosen: only they.",
    )
    writer_roles = RoleChoices(
        label="Writers",
        queryset=Role.objects.all(),
        required=False,
        help_text="Who holds one of these may load and delete here. None chosen: collection_admin.",
    )

    class Meta:
        model = Collection
        fields = (
            "name", "text_configuration", "chunk_size", "chunk_overlap", "alpha", "reader_roles", "writer_roles",
        )  # fmt: skip
        labels: ClassVar[dict[str, str]] = {
            "chunk_size": "Chunk size", "chunk_overlap": "Chunk overlap", "alpha": "Share of words",
        }  # fmt: skip
        help_texts: ClassVar[dict[str, str]] = {
            "text_configuration": LANGUAGE,
            "chunk_size": "Characters of a passage. It counts for what is loaded from now on.",
            "chunk_overlap": "Characters that a passage repeats of the one before it; at most half of its size.",
        }

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        if "text_configuration" in self.fields:
            names = dict.fromkeys((*LANGUAGES.split(), self.instance.text_configuration))
            known = [("", "guess it"), *((name, name) for name in names if name)]
            self.fields["text_configuration"].widget = UnfoldAdminSelectWidget(choices=known)

    def clean_name(self) -> str:
        check_name(self.cleaned_data["name"])
        name = well_named(self.cleaned_data["name"])
        if name != self.initial.get("name"):
            try:
                check_visible(name)
            except ValueError as error:
                raise forms.ValidationError(str(error)) from None
        others = Collection.objects.filter(name=name, deleted_at__isnull=True).exclude(pk=self._own_key())
        if others.exists():
            raise forms.ValidationError(TAKEN)
        return name

    def clean_text_configuration(self) -> str:
        try:
            return CollectionSettingsSerializer().validate_language(self.cleaned_data["text_configuration"])
        except serializers.ValidationError:
            raise forms.ValidationError("This PostgreSQL has no text search configuration of that name.") from None

    def _own_key(self) -> str:
        # The key of one that is not saved is no value yet.
        return "" if self.instance.is_new else self.instance.pk
