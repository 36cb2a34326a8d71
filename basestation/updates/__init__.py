"""Updates: the history of a query's answer, as the engine emits it and as clients receive it."""
