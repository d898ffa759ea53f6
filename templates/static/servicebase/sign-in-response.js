// Reads the response of the identity provider from the URL fragment and posts it with the form.
"use strict";
{
  const form = document.getElementById("sign-in-response");
  const parameters = new URLSearchParams(location.hash.slice(1));
  // First, so that the token stays neither in the address bar nor in the history.
  history.replaceState(null, "", location.pathname);
  let hasResponse = false;
  for (const field of form.querySelectorAll("input[disabled]")) {
    const values = parameters.getAll(field.name);
    if (values.length === 1) {
      field.value = values[0];
      field.disabled = false;
      hasResponse = true;
    }
  }
  if (hasResponse) form.submit();
  else location.replace(form.dataset.startUrl);
}
