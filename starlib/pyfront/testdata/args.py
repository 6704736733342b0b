import argparse

parser = argparse.ArgumentParser(description='Arguments of every kind')
parser.add_argument('num_gpus', type=int, help='number of gpus')
parser.add_argument('trees', type=int, choices=[1, 2])
parser.add_argument('extra', nargs='?', default='none')
parser.add_argument('--protocol', type=str, default='Simple', choices=['Simple', 'LL', 'LL128'], help='Protocol')
parser.add_argument('-n', '--instances', type=int, default=1)
parser.add_argument('--ib-connections', type=int, default=-1)
parser.add_argument('--rate', type=float, default='0.5')
parser.add_argument('--verbose', '-v', action='count', default=0)
parser.add_argument('--inplace', action='store_true')
parser.add_argument('--no-fusion', dest='fusion', action='store_false')
parser.add_argument('--sizes', nargs='+', type=int)
parser.add_argument('--pair', nargs=2)
parser.add_argument('--add', action='append')
parser.add_argument('--mode', action='store_const', const='fast', default='slow')
parser.add_argument('--maybe', nargs='?', const='given', default='absent')
parser.set_defaults(added=3)
args = parser.parse_args()
if args.ib_connections == -1:
    args.ib_connections = args.instances
print(args)
