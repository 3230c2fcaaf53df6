"""Operations as an older release left them: samples, clouds to plant them in, how each kind ends."""
