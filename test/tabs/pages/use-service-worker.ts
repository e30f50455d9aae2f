import { CLASSIC_SERVICE_WORKER, SERVICE_WORKER } from "./fetch-base.js";

/** Resolves once the service worker controls this page: the module, or the same as a script in Firefox before 147. */
export async function useServiceWorker(): Promise<void> {
  const { serviceWorker, userAgent } = navigator;
  await serviceWorker.register(SERVICE_WORKER, { type: "module" }).catch((error: unknown) => {
    if (!userAgent.includes("Firefox")) throw error;
    return serviceWorker.register(CLASSIC_SERVICE_WORKER);
  });
  if (serviceWorker.controller !== null) return;
  await new Promise((resolve) => serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
}
