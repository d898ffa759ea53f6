"""Views and pages for sign-in through a provider and sign-out."""
