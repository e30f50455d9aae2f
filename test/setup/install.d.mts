/** The repository, without a slash at its end. */
export const ROOT: string;
export function requireNode(version?: string): void;
export function install(): void;
export function hasPackages(folder: string): boolean;
export function installPackages(folder: string): boolean;
