/** The services that a purchase needs, with promises. They compare keys, so that each effect happens once. */
export const done: Array<string> = []

const once = (what: string, key: string): void => {
  if (!done.includes(`${what} ${key}`)) done.push(`${what} ${key}`)
}

export const charge = async (cents: number, key: string): Promise<string> => {
  once(`charge ${cents}`, key)
  return `payment ${cents}`
}

export const refund = async (payment: string, key: string): Promise<void> => once(`refund ${payment}`, key)

export const ship = async (tea: string, address: string, key: string, signal: AbortSignal): Promise<string> => {
  signal.throwIfAborted()
  once(`ship ${tea}`, key)
  return `${tea} is on its way to ${address}`
}
