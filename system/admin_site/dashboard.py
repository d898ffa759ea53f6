"""The index page and sidebar of the admin site. Each app registers its tiles and links."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True)
class Tile:
    title: str
    figure: str
    description: str
    url: str
    icon: str
    # Whether the figure needs attention.
    needs_attention: bool = False
    # Text about anything else that needs attention.
    warnings: str = ""


@dataclass(frozen=True)
class Link:
    """A sidebar link to the list of a model, shown to users who may view it."""

    title: str
    icon: str
    model: str  # app_label.ModelName

    @property
    def url(self) -> str:
        app, name = self.model.lower().split(".")
        return reverse(f"admin:{app}_{name}_changelist")


TileFactory = Callable[[HttpRequest], Tile | None]
TILES: list[tuple[int, TileFactory]] = []
# The links of each group, by its position and title.
SIDEBAR_GROUPS: defaultdict[tuple[int, str], list[Link]] = defaultdict(list)


def register_tile(order: int) -> Callable[[TileFactory], TileFactory]:
    """Add a tile at a position; the factory returns None for users who may not see it."""

    def add(factory: TileFactory) -> TileFactory:
        TILES.append((order, factory))
        return factory

    return add


def register_links(title: str, order: int, *links: Link) -> None:
    SIDEBAR_GROUPS[order, title].extend(links)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The theme's callback for the sidebar: the groups with at least one link for this user."""
    groups: list[dict[str, Any]] = [
        {"title": "", "items": [{"title": "Dashboard", "icon": "home", "link": reverse("admin:index")}]}
    ]
    user: Any = request.user
    for (_, title), group in sorted(SIDEBAR_GROUPS.items()):
        links = [
            {"title": link.title, "icon": link.icon, "link": link.url}
            for link in group
            if user.has_module_perms(link.model.partition(".")[0])
        ]
        if links:
            groups.append({"title": title, "separator": True, "items": links})
    return groups


def add_tiles(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The theme's callback for the index page."""
    factories = [factory for _, factory in sorted(TILES, key=lambda entry: entry[0])]
    context["tiles"] = [tile for factory in factories if (tile := factory(request)) is not None]
    return context
