// Tells Swagger UI and ReDoc whether the page is dark: they cannot read it from the colour scheme.
"use strict";
{
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const isDark = root.dataset.theme === "dark" || (root.dataset.theme !== "light" && system.matches);
    if (root.classList.contains("dark-mode") === isDark) return;
    root.classList.toggle("dark-mode", isDark);
    root.dispatchEvent(new Event("darkmodechange"));
  };
  apply();
  root.addEventListener("themechange", apply);
  system.addEventListener("change", apply);
}
