/** The repository, without a slash at its end. */
export const ROOT: string;
export function requireNode(version?: string): void;
export function install(): void;
export function installPackages(folder: string): boolean;
