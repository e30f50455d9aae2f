/** Of this package; `/info` tells it. */
export const VERSION = "0.1.0";
