import kernels
from common import SPECS
