"""Partita for Python: models are compiled, and run and trained on NumPy arrays. ::

    import partita

    partita.compile("net.onnx", "net.partita", devices=2, micro_batches=4)
    with partita.Model("net.partita") as model:
        outputs = model.run(image=images)      # {"classes": array}, any number of samples

    with partita.Trainer("learning.partita") as trainer:
        for image, label in batches:           # trainer.step_samples each
            print(trainer.step(image=image, label=label).loss)
        trainer.export("trained.onnx")

The package calls libpartita, a shared library beside it, and partita-compile; nothing but NumPy is needed. Any thread may call any method, at the same time: samples of a model that
come together share a step, and steps overlap; calls of a trainer follow one another. Arrays are not copied if they are C-contiguous and of the input's type.
"""

from ._compile import compile
from ._library import API_VERSION, Error, InputError
from ._model import Model, Profile, Sequence, Ticket
from ._ports import Port
from ._states import State
from ._trainer import Evaluation, Position, Step, Trainer

__all__ = ["API_VERSION", "Error", "Evaluation", "InputError", "Model", "Port", "Position", "Profile", "Sequence", "State", "Step", "Ticket", "Trainer", "compile"]
