"""The URLs of the product and of the comparison."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from bench.tableapi.project.views import TaskViewSet
from config.urls import handler400, handler403, handler404, handler500, urlpatterns

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

router = SimpleRouter()
router.register("task", TaskViewSet, basename="drf-task")

urlpatterns = [
    *urlpatterns,
    path("rest/bench/", include(router.urls)),
]
