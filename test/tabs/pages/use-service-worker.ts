import { CLASSIC_SERVICE_WORKER, SERVICE_WORKER } from "./fetch-base.js";

/** Resolves once the service worker controls this page: the module, or the same as a script where the browser takes none. */
export async function useServiceWorker(): Promise<void> {
  const { serviceWorker } = navigator;
  await serviceWorker
    .register(SERVICE_WORKER, { type: "module" })
    .catch(() => serviceWorker.register(CLASSIC_SERVICE_WORKER));
  if (serviceWorker.controller !== null) return;
  await new Promise((resolve) => serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
}
