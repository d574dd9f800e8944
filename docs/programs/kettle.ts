/** The kettles of the tea shop, which must be unplugged. */

export interface Kettle {
  readonly boil: () => Promise<string>
  readonly unplug: () => Promise<void>
}

/** How many kettles are plugged in. */
export let pluggedIn = 0

export const plugIn = async (): Promise<Kettle> => {
  const number = ++pluggedIn
  return {
    boil: async () => `Kettle ${number} boils`,
    unplug: async () => {
      pluggedIn--
    }
  }
}
