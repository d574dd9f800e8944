/** `logging/setLevel`. */

export const install = (): void => {}
