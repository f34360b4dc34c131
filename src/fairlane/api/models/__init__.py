"""What the calls take and answer, as the OpenAPI document describes it: a file a resource."""
