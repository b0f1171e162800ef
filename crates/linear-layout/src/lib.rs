//! Linear layouts over F2: algebra, encodings and hardware plans.
