/** The part of the platform's LockManager (Web Locks API) that the runtime uses. */
export interface LockManagerLike {
  request<T>(name: string, options: LockOptions, callback: (lock: Lock | null) => T | Promise<T>): Promise<T>;
}
