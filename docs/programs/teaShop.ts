/** A service of a tea shop with promises. */
const cents: Readonly<Record<string, number>> = { sencha: 900, oolong: 1200 }

export const prices = async (signal: AbortSignal): Promise<Readonly<Record<string, number>>> => {
  signal.throwIfAborted()
  return cents
}

export const priceOf = async (tea: string, signal: AbortSignal): Promise<number | undefined> =>
  (await prices(signal))[tea]
