/** A page's call that takes longer is given up by the driver, which knows nothing of it. In ms. */
const PATIENCE_MS = 40_000;

/** The answer, or an error that says how far it has come: what is lost never arrives. */
export async function inTime<T>(answer: Promise<T>, howFar: () => string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not there after ${PATIENCE_MS} ms: ${howFar()}`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
