export function treeOf(pid: number): number[];
export function isAlive(pid: number): boolean;
export function signal(pids: readonly number[], name: NodeJS.Signals): void;
export function killTree(pid: number): void;
