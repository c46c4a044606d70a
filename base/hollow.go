package base

// HollowLabel is the label of nodes that exist only in the API (see hollow). Nobody
// answers at their addresses: no kubelet, no tunnel, no pod.
const HollowLabel = "periplus.io/hollow"
