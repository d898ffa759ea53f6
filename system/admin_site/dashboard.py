"""The admin's index and sidebar: each area adds its tile and its links."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True)
class Tile:
    """A box of the dashboard."""

    title: str
    figure: str
    about: str
    address: str
    icon: str
    # Whether the figure is what worries.
    is_worrying: bool = False
    # What else does.
    worries: str = ""


@dataclass(frozen=True)
class Link:
    """A line of the sidebar: a model's list, shown to those who may view it."""

    title: str
    icon: str
    model: str  # app_label.ModelName

    @property
    def address(self) -> str:
        app, name = self.model.lower().split(".")
        return reverse(f"admin:{app}_{name}_changelist")

    def is_for(self, user: Any) -> bool:
        return bool(user.has_module_perms(self.model.partition(".")[0]))


@dataclass
class Group:
    """A group of the sidebar."""

    title: str
    order: int
    links: list[Link] = field(default_factory=list)


MakeTile = Callable[[HttpRequest], Tile | None]
TILES: list[tuple[int, MakeTile]] = []
GROUPS: dict[str, Group] = {}


def tile(order: int) -> Callable[[MakeTile], MakeTile]:
    """Add a tile at its place; it returns None for somebody who may not see it."""

    def add(make: MakeTile) -> MakeTile:
        TILES.append((order, make))
        return make

    return add


def group(title: str, order: int, *links: Link) -> None:
    """Add links to a group of the sidebar."""
    GROUPS.setdefault(title, Group(title, order)).links.extend(links)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """What the theme draws: groups with at least one link for this person."""
    found: list[dict[str, Any]] = [
        {"title": "", "items": [{"title": "Dashboard", "icon": "home", "link": reverse("admin:index")}]}
    ]
    for each in sorted(GROUPS.values(), key=lambda group: group.order):
        links = [
            {"title": link.title, "icon": link.icon, "link": link.address}
            for link in each.links
            if link.is_for(request.user)
        ]
        if links:
            found.append({"title": each.title, "separator": True, "items": links})
    return found


def fill(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The theme's callback for the index page."""
    in_order = sorted(TILES, key=lambda placed: placed[0])
    context["tiles"] = [found for _, make in in_order if (found := make(request)) is not None]
    return context
