"""The pages behind the checks' Details links: data, templates, and the signed links that open them."""
