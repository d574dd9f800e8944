/** A name that the server sent, quoted and shortened for a message. */
export const quoted = (name: string): string => JSON.stringify(name.slice(0, 64))
