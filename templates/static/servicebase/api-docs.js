// The API docs: Swagger UI, and a key for trying out operations, which only the memory of this page has.
"use strict";

// Never shows credentials: in the copied command, the shell inserts its variable TOKEN.
function curlCommand(request, generate) {
  const headers = request.get("headers");
  const names = headers ? [...headers.keys()].filter((name) => name.toLowerCase() === "authorization") : [];
  const masked = names.reduce((result, name) => result.setIn(["headers", name], "Bearer $TOKEN"), request);
  return names.reduce(
    (text, name) => text.replace(`'${name}: Bearer $TOKEN'`, () => `"${name}: Bearer $TOKEN"`), generate(masked));
}

// The page has one main element, and its headings skip no level. Swagger UI adds a second one, and omits h2, so this
// replaces React's function for the whole page.
const HEADING_LEVELS = new Map([["h3", 2], ["h4", 3], ["h5", 4]]);
function adjustElements(create) {
  return (type, props, ...children) => {
    const level = HEADING_LEVELS.get(type);
    return create(type === "main" ? "div" : type, level ? { ...props, "aria-level": level } : props, ...children);
  };
}

function servicebasePlugin({ React, fn }) {
  const element = React.createElement = adjustElements(React.createElement);
  function Curl({ request }) {
    const text = curlCommand(request, fn.requestSnippetGenerator_curl_bash);
    const [isCopied, setCopied] = React.useState(false);
    const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
    return element("div", { className: "curl-command" },
      element("h4", null, "Curl"),
      element("pre", { className: "curl microlight", tabIndex: 0 }, text),
      navigator.clipboard && element("button", { type: "button", className: "btn", onClick: copy },
        isCopied ? "Copied" : "Copy as curl"));
  }
  const containsPhrase = (phrase) => (_, tag) => tag.toLowerCase().includes(phrase.toLowerCase());
  return { components: { curl: Curl }, fn: { opsFilter: (tags, phrase) => tags.filter(containsPhrase(phrase)) } };
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("docs-key");
  const status = document.getElementById("docs-key-status");
  const ui = SwaggerUIBundle({
    url: document.getElementById("swagger-ui").dataset.schema, dom_id: "#swagger-ui", deepLinking: true,
    validatorUrl: null, docExpansion: "none", defaultModelsExpandDepth: 0, filter: true, plugins: [servicebasePlugin],
    onComplete: () => { if (form) form.querySelector("button").disabled = false; },
  });
  let timer;
  const forget = () => {
    ui.authActions.logout(["access_key"]);
    status.textContent = "The key has expired. Create another one.";
  };

  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const allowWrites = form.elements.allow_writes.checked;
    status.textContent = "Creating a key…";
    let response, body;
    try {
      response = await fetch(form.action, {
        method: "POST", body: JSON.stringify({ allow_writes: allowWrites }),
        headers: { "Content-Type": "application/json", "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
      });
      body = await response.json();
    } catch {
      status.textContent = "The service did not respond. Try again.";
      return;
    }
    if (!response.ok) {
      const isSignedOut = response.status === 401;
      status.textContent = isSignedOut ? "You are signed out. Sign in and reload this page." : body.errors[0].message;
      return;
    }
    clearTimeout(timer);
    ui.preauthorizeApiKey("access_key", body.data.auth_key);
    timer = setTimeout(forget, body.data.expires_in * 1000);
    const until = new Date(Date.now() + body.data.expires_in * 1000).toTimeString().slice(0, 5);
    status.textContent = `This page has a ${allowWrites ? "" : "read-only "}key until ${until}.`;
  });
});
