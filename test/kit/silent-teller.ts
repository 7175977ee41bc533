/** Tells nobody of calls. */
export const SILENT_TELLER = { tellCall: () => undefined, tellUnknownCall: () => undefined };
