// Takes what the identity provider put behind the # out of the address, then posts the fields that the page has.
"use strict";
{
  const form = document.getElementById("bridge");
  const given = new URLSearchParams(location.hash.slice(1));
  // First of all: a token must stay neither in the address bar nor in the history.
  history.replaceState(null, "", location.pathname);
  let found = false;
  for (const field of form.querySelectorAll("input[disabled]")) {
    const values = given.getAll(field.name);
    if (values.length === 1) {
      field.value = values[0];
      field.disabled = false;
      found = true;
    }
  }
  if (found) form.submit();
  else location.replace(form.dataset.start);
}
