// Who sees what: the picker of users.

import { enhancePickers } from "./picker.js";

enhancePickers(document);
