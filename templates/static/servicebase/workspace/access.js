// Who sees what: the picker of users. Filter and record belong to the table that was chosen before.

import { enhancePickers } from "./picker.js";

enhancePickers(document);
document.getElementById("access-table").addEventListener("change", (event) => {
  for (const control of event.target.form.querySelectorAll("[name=sysparm_query], [name=record]")) control.remove();
});
