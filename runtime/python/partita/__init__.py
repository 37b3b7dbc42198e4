"""Partita's runtime for Python: compiled models on NumPy arrays.

    import partita

    with partita.Model("net.partita") as model:
        outputs = model.run(image=images)      # {"classes": array}, any number of samples

The package calls libpartita, a shared library beside it; nothing but NumPy is needed. Any thread may call any method, at the same time: samples that
come together share a step, and steps overlap. Arrays are not copied if they are C-contiguous and of the input's type.
"""

from ._library import API_VERSION, Error
from ._model import Model, Port, Profile, Ticket

__all__ = ["API_VERSION", "Error", "Model", "Port", "Profile", "Ticket"]
