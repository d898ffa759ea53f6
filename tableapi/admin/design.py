"""The base of the pages whose saving changes the database: what is refused there is said, and nothing is half done."""

from typing import Any

from django.http import HttpRequest

from system.admin_site import TrackedAdmin


class OfTable(TrackedAdmin):
    """The same for what is the product's own when its table is."""

    def is_ours(self, obj: Any) -> bool:
        """Whether it is the product's own, so that only its label changes."""
        raise NotImplementedError

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_readonly_fields(request, obj)
        if obj is None:
            return found
        fixed = [name for name in self.fields if name != "label"] if self.is_ours(obj) else obj.fixed
        return (*found, *(name for name in fixed if name in self.fields and name not in found))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_ours = obj is not None and self.is_ours(obj)
        return not is_ours and bool(super().has_delete_permission(request, obj))
