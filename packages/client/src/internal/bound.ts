/**
 * Methods that work without their object (`const { callTool } = client`). An object needs no memory for them until they
 * are read: a closure for each would be most of the memory of an idle client.
 */

/** Makes each method of a class bind itself to the object that it is first read from. */
export const bindOnRead = (prototype: object): void => {
  for (const [name, { value: method }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (typeof method !== "function" || name === "constructor") continue
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: object) {
        const value: unknown = method.bind(this)
        Object.defineProperty(this, name, { value })
        return value
      }
    })
  }
}
