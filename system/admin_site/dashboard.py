"""The index page and sidebar of the admin site. Each app registers its tiles, first steps and links."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from system import properties
from system.admin_site.charts import build_charts
from system.models import Property
from system.property_definitions import FIRST_STEPS


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
    """A sidebar link to the list of a model, or to the page that replaces it, shown to users who may view it."""

    title: str
    icon: str
    model: str  # app_label.ModelName
    url_name: str = ""

    @property
    def url(self) -> str:
        return reverse(self.url_name or f"admin:{self.model.lower().replace('.', '_')}_changelist")


@dataclass(frozen=True)
class Step:
    """Something to do first on a new installation."""

    title: str
    url: str
    is_done: bool


TileFactory = Callable[[HttpRequest], Tile | None]
TILES: list[tuple[int, TileFactory]] = []
# The first steps, by their position, the app whose administrators can do them, and a function.
STEPS: list[tuple[int, str, Callable[[], Step]]] = []
# The links of each group, by its position and title.
SIDEBAR_GROUPS: defaultdict[tuple[int, str], list[Link]] = defaultdict(list)


def register_tile(order: int) -> Callable[[TileFactory], TileFactory]:
    """Add a tile at a position; the factory returns None for users who may not see it."""

    def add(factory: TileFactory) -> TileFactory:
        TILES.append((order, factory))
        return factory

    return add


def register_step(order: int, app: str) -> Callable[[Callable[[], Step]], Callable[[], Step]]:
    def add(factory: Callable[[], Step]) -> Callable[[], Step]:
        STEPS.append((order, app, factory))
        return factory

    return add


def open_steps(user: Any) -> list[Step]:
    """The first steps that the user can do, until all of them are done or an administrator hides them."""
    if not properties.get(FIRST_STEPS):
        return []
    steps = [create() for _, app, create in sorted(STEPS, key=lambda entry: entry[0]) if user.has_module_perms(app)]
    return [] if all(step.is_done for step in steps) else steps


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
    by_day = request.GET.get("range") == "days"
    context |= {"steps": open_steps(request.user), "charts": build_charts(request, by_day=by_day), "by_day": by_day}
    context["steps_property"] = Property.objects.filter(name=FIRST_STEPS.name).first()
    context["tiles"] = [tile for factory in factories if (tile := factory(request)) is not None]
    return context
