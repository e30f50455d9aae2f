import { IDLE_LOCK, type IdleWord } from "./stamps.js";

const held = new Promise<void>((resolve) => {
  void navigator.locks.request(IDLE_LOCK, () => {
    resolve();
    return new Promise(() => undefined);
  });
});

addEventListener("connect", (connecting) => {
  const [port] = (connecting as MessageEvent).ports;
  if (port === undefined) return;
  port.postMessage("here" satisfies IdleWord);
  void held.then(() => port.postMessage("held" satisfies IdleWord));
});
