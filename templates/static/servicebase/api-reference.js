// Draws the API reference in the colours of the page.
"use strict";
{
  // ReDoc computes with colours, so it needs their values instead of the names of variables.
  const colour = (name) => {
    const sample = Object.assign(document.createElement("span"), { hidden: true });
    sample.style.color = `var(--${name})`;
    document.body.append(sample);
    const value = getComputedStyle(sample).color;
    sample.remove();
    return value;
  };

  const draw = () => {
    const old = document.getElementById("redoc");
    const place = old.cloneNode(false);
    old.replaceWith(place);
    const [text, muted, border, brand, surface, background] = ["text", "muted-text", "border", "brand", "surface", "background"].map(colour);
    const fontFamily = "var(--font)";
    const theme = {
      colors: { primary: { main: brand, light: muted }, text: { primary: text, secondary: muted }, border: { light: border, dark: border },
        success: { main: colour("success") }, error: { main: colour("error") },
        responses: { success: { color: colour("success"), backgroundColor: colour("success-tint"), tabTextColor: "#7fd3a4" },
          error: { color: colour("error"), backgroundColor: colour("error-tint"), tabTextColor: "#f2a09b" } },
        http: { get: "#20706a", post: "#185853", put: "#6b4d00", patch: "#6b4d00", delete: "#a3241f" } },
      schema: { nestedBackground: surface, linesColor: border, typeNameColor: muted, typeTitleColor: muted, requireLabelColor: colour("error") },
      typography: { fontSize: "15px", fontFamily, headings: { fontFamily }, code: { color: text, backgroundColor: surface }, links: { color: brand, visited: brand, hover: brand } },
      sidebar: { backgroundColor: surface, textColor: text, activeTextColor: brand },
      rightPanel: { backgroundColor: "#18211f", textColor: "#e8efee" },
      codeBlock: { backgroundColor: "#101716" },
    };
    Redoc.init(place.dataset.schema, { nonce: place.dataset.nonce, theme }, place);
  };
  draw();
  document.documentElement.addEventListener("darkmodechange", draw);
}
