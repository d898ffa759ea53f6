"""App configuration of the workspace."""

from django.apps import AppConfig


class WorkspaceConfig(AppConfig):
    name = "workspace"
    verbose_name = "Workspace"

    def ready(self) -> None:
        from tableapi.design_files import kinds
        from workspace.lists.design_section import SHARED_LIST
        from workspace.pages import start_page_entry  # noqa: F401  (registers the entry)

        kinds.register(SHARED_LIST)
