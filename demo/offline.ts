import { registerSW } from "virtual:pwa-register";

/** From the second visit on the page opens without a network. The development server serves everything afresh. */
export function workOffline(): void {
  if (import.meta.env.PROD) registerSW({ immediate: true });
}
