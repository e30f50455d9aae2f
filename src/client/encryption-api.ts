import { randomId } from "../platform/ids.js";
import { loaded } from "../run/loaded.js";
import type { EncryptionKey } from "../storage/encryption/encryption.js";
import type { SentKey } from "../storage/encryption/keys.js";
import type { HostLink } from "./host-link.js";

/** The key of an encrypted database; `status$` says whether one is needed. */
export interface EncryptionApi {
  /**
   * Gives the key, for all tabs and hosts like this one. The first one ever becomes that of the database: let people type a
   * new passphrase twice. This tab keeps it in memory, and gives it again when its host has died.
   *
   * @param key a passphrase, or a key as `createEncryptionKey` makes it. A passphrase leaves this tab only as what keys are
   * derived from; in WebKit, which hands no `CryptoKey` to a SharedWorker, as bytes, and no other key can be given there
   * Resolves when everything can be read. Errors: RunnerError `wrong-key` (`details.dbName` says of which
   * database); `locked` if somebody locks it meanwhile; `invalid-input` where the host encrypts nothing
   */
  unlock(key: EncryptionKey): Promise<void>;
  /**
   * Locks the database in all tabs and hosts, for whoever signs out: live runs are stopped, and nothing can be read until
   * somebody gives the key. Take what is on the screen away yourself.
   */
  lock(): Promise<void>;
  /**
   * From now on `next` is the key, and the database is unlocked. What is stored is not encrypted anew.
   *
   * Errors: RunnerError `wrong-key`, nothing changed; `locked` if somebody locks it meanwhile: the key may have changed.
   */
  changeKey(current: EncryptionKey, next: EncryptionKey): Promise<void>;
}

/** As it is given to the host. Loaded when needed: few pages have a key. */
async function keyFor(link: HostLink, given: EncryptionKey): Promise<SentKey> {
  const [{ toSent }, form] = await Promise.all([loaded(import("../storage/encryption/keys.js")), link.keyForm()]);
  return toSent(given, form);
}

export const encryptionApi = (link: HostLink): EncryptionApi => ({
  unlock: async (given) => {
    const key = await keyFor(link, given);
    link.keep({ key, locks: await link.call("unlock", { key, id: randomId() }) });
    // The host ends its links when it begins to read: this waits for the new one.
    await link.unlocked();
  },
  lock: async () => {
    try {
      await link.call("lock", { id: randomId() });
    } finally {
      // Whatever fails: this tab must not unlock the next host.
      link.keep(undefined);
    }
  },
  changeKey: async (current, next) => {
    const [from, to] = await Promise.all([keyFor(link, current), keyFor(link, next)]);
    // A host of an older build answers nothing, and is asked.
    const told: number | null = await link.call("changeKey", { current: from, next: to, id: randomId() });
    const locks = told ?? (await link.call("unlock", { key: to, id: randomId() }));
    link.keep({ key: to, locks });
    await link.unlocked();
  },
});
