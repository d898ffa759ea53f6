"""`python -m collections_app.model_files`: converts the files of all local models after the installation."""

import sys

from . import ModelFilesMissing, prepare_files
from .minilm import MINILM
from .navec import NAVEC

for package in (MINILM, NAVEC):
    try:
        prepare_files(package)
    except ModelFilesMissing as error:
        sys.exit(str(error))
