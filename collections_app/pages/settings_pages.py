"""The tabs on which managers of a collection change its permissions and settings."""

from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize

from accounts.admin.roles import RoleMultipleChoiceField
from accounts.models import Role
from collections_app import access, embed
from collections_app.documents import counts
from collections_app.http.api.serializers import check_language, language_names
from collections_app.lexical.synonyms import check_synonyms
from collections_app.models import Collection
from collections_app.models.collections import InvalidName, check_visible_characters, normalize_name
from collections_app.pages.views import CollectionPage, confirmation_page
from collections_app.vectors import model_choice, reembedding
from system.errors import NotFound, ServiceError

STALE_MESSAGE = "Another user changed this collection in the meantime. Check the values, and save again to overwrite."
LOST_ACCESS_WARNING = (
    "You can no longer change this collection because you are not one of its writers. "
    "An administrator can restore your access."
)
LANGUAGE_HELP = "Language for keyword search in new and reprocessed documents. “Simple” compares words as written."
NAME_TAKEN = "A collection with this name already exists."


class AccessForm(forms.ModelForm):  # type: ignore[type-arg]
    role_field = partial(
        RoleMultipleChoiceField, queryset=Role.objects.all(), required=False, widget=forms.CheckboxSelectMultiple
    )
    reader_roles = role_field(
        label="Readers",
        help_text="Roles that can search this collection, in addition to writers. Leave empty for writers only.",
    )
    writer_roles = role_field(
        label="Writers", help_text="Roles that can add and delete documents. Leave empty for collection_admin only."
    )

    class Meta:
        model = Collection
        fields = ("reader_roles", "writer_roles")


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    embedding_model_choice = forms.ChoiceField(
        label="Embedding model",
        help_text="If chosen automatically, collections in English and in Russian get a model for that language. "
        "After a change, the passages are re-embedded in the background.",
        required=False,
        choices=[("", "Choose automatically"), *((name, name) for name in embed.LOCAL_MODELS)],
    )

    class Meta:
        model = Collection
        fields = (
            "name", "text_configuration", "chunk_size", "chunk_overlap", "alpha", "embedding_model_choice", "synonyms",
            "doc_id_from_filename",
        )  # fmt: skip
        widgets = {"synonyms": forms.Textarea(attrs={"rows": 4})}
        labels = {"alpha": "Keyword weight"}
        help_texts = {
            "text_configuration": LANGUAGE_HELP,
            "alpha": "1 = keywords only, 0 = semantic only. With the default, 0.7, the model and the language "
            "determine it.",
            "chunk_size": "Maximum number of characters per passage, for new and reprocessed documents.",
            "chunk_overlap": "Number of characters repeated from the previous passage. At most half of the chunk size.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        configurations = dict.fromkeys((*language_names(), self.instance.text_configuration))
        choices = [("", "Detect automatically"), *((name, name) for name in configurations if name)]
        self.fields["text_configuration"].widget = forms.Select(choices=choices)
        if not embed.chooses_models():
            del self.fields["embedding_model_choice"]

    def clean_name(self) -> str:
        try:
            name = normalize_name(self.cleaned_data["name"])
            if name != self.initial.get("name"):
                check_visible_characters(name)
        except InvalidName as error:
            raise forms.ValidationError(error.message) from None
        if Collection.objects.filter(name=name, deleted_at__isnull=True).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(NAME_TAKEN)
        return name

    def clean_synonyms(self) -> str:
        return check_synonyms(self.cleaned_data["synonyms"])

    def clean_text_configuration(self) -> str:
        return check_language(self.cleaned_data["text_configuration"])


class CollectionFormPage(CollectionPage):
    tab: ClassVar[str]
    form_class: ClassVar[type[forms.ModelForm]]  # type: ignore[type-arg]

    def get(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "manage")
        return self._show(collection, self.form_class(instance=collection), collection.sys_version)

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "manage")
        try:
            with transaction.atomic():
                locked = Collection.lock(sys_id)
                if locked is None:
                    raise NotFound("The collection does not exist.")
                version = locked.sys_version
                form = self.form_class(request.POST, instance=locked)
                if str(version) != request.POST.get("sys_version", ""):
                    form.add_error(None, STALE_MESSAGE)
                if form.is_valid():
                    locked.save(update_fields=form.changed_data)
                    model_choice.apply_choice(locked)
        except IntegrityError:
            form.add_error("name", NAME_TAKEN)
        if not form.is_valid():
            return self._show(collection, form, version, 400)
        messages.success(request, "Saved.")
        # Reload the rights, because the change may affect the user's own.
        rights = access.rights(self.user(), Collection.objects.get(pk=sys_id))
        if "manage" not in rights:
            messages.warning(request, LOST_ACCESS_WARNING)
            return redirect("collection", sys_id) if rights else redirect("collections")
        return redirect(f"collection-{self.tab}-page", sys_id)

    def _show(self, collection: Collection, form: Any, version: int, status: int = 200) -> HttpResponse:
        context = self.tab_context(collection, self.tab) | {"form": form, "version": version}
        return render(self.request, f"collections/{self.tab}.html", context, status=status)


class AccessPage(CollectionFormPage):
    """`/collections/{sys_id}/access/`: who can search the collection and change its documents."""

    tab, form_class = "access", AccessForm


class SettingsPage(CollectionFormPage):
    """`/collections/{sys_id}/settings/`: name, splitting, search weight, embedding model, deletion."""

    tab, form_class = "settings", SettingsForm

    def tab_context(self, collection: Collection, tab: str) -> dict[str, Any]:
        is_current = model_choice.is_target_space(collection.space, collection)
        may_reembed = collection.next_space is not None or not is_current
        return super().tab_context(collection, tab) | {"may_reembed": may_reembed}


class ReembedView(CollectionPage):
    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "manage")
        if "confirmed" not in request.POST:
            target_space = model_choice.target_space(collection)
            count = counts.count_by_collection([collection.pk])[collection.pk].chunk_count
            # During a re-embedding, confirming the current space cancels it.
            question = f"Cancel the re-embedding with {collection.next_space}? Searches continue to use {target_space}."
            button = "Cancel re-embedding"
            if target_space != collection.space:
                question = f"Embed {count} passage{pluralize(count)} of “{collection}” with {target_space}? "
                question += f"This runs in the background. Until it is complete, searches use {collection.space}."
                button = "Re-embed"
            return confirmation_page(request, question, collection, button, "collection-settings-page")
        try:
            reembedding.start_reembedding(collection, model_choice.target_space(collection))
        except ServiceError as error:
            messages.error(request, error.message)
        else:
            started_text = "Re-embedding started. Searches use the current vectors until it is complete."
            messages.success(request, started_text if collection.next_space_id else "Re-embedding canceled.")
        return redirect("collection-settings-page", sys_id)
