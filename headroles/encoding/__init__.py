"""Encoding of examples as word pieces, each with its segment and its word."""

from headroles.encoding.encoder import NO_PIECES as NO_PIECES
from headroles.encoding.encoder import SPECIAL as SPECIAL
from headroles.encoding.encoder import TOO_LONG as TOO_LONG
from headroles.encoding.encoder import AlignedEncoder as AlignedEncoder
from headroles.encoding.encoder import Alignment as Alignment
from headroles.encoding.encoder import EncodedExample as EncodedExample
from headroles.encoding.encoder import ExampleEncoder as ExampleEncoder
from headroles.encoding.encoder import collate as collate
from headroles.encoding.encoder import pad as pad
from headroles.encoding.encoder import refuse_unknown as refuse_unknown
