from .corpus import read_conllu as read_conllu
from .corpus import read_pairs as read_pairs
from .corpus import read_text as read_text
from .errors import HeadRolesError as HeadRolesError
from .models import load_model as load_model
from .roles import Role as Role
from .sample import demo_model as demo_model
from .sample import sample_treebank as sample_treebank
from .scoring import HeadScores as HeadScores
from .scoring import score_heads as score_heads
from .studies import Classification as Classification
from .studies import PowerPlan as PowerPlan
from .studies import RoleShifts as RoleShifts
from .studies import RoleTable as RoleTable
from .studies import assign_roles as assign_roles
from .studies import classify_heads as classify_heads
from .studies import compare_roles as compare_roles
from .studies import plan_examples as plan_examples

__version__: str
