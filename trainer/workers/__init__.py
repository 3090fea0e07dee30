"""Where generating and learning happen: in this process, or in Ray actors. The controller cannot tell them apart."""

from .base import Ticket, Workers

__all__ = ["Ticket", "Workers"]
